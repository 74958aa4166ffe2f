// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// The functions of LI.FI's contract that its service asks for, with its events: swaps at exchanges, and the start of a
/// bridge in the forms of Across. What is bridged goes to the filler of the local world. The code is placed without its
/// constructor and keeps no storage.
contract LifiDiamond {
    using SafeERC20 for IERC20;

    struct SwapData {
        address callTo;
        address approveTo;
        address sendingAssetId;
        address receivingAssetId;
        uint256 fromAmount;
        bytes callData;
        bool requiresDeposit;
    }

    struct BridgeData {
        bytes32 transactionId;
        string bridge;
        string integrator;
        address referrer;
        address sendingAssetId;
        address receiver;
        uint256 minAmount;
        uint256 destinationChainId;
        bool hasSourceSwaps;
        bool hasDestinationCall;
    }

    struct AcrossV3Data {
        address receiverAddress;
        address refundAddress;
        address receivingAssetId;
        uint256 outputAmount;
        uint64 outputAmountPercent;
        address exclusiveRelayer;
        uint32 quoteTimestamp;
        uint32 fillDeadline;
        uint32 exclusivityDeadline;
        bytes message;
    }

    struct AcrossV4Data {
        bytes32 receiverAddress;
        bytes32 refundAddress;
        bytes32 sendingAssetId;
        bytes32 receivingAssetId;
        uint256 outputAmount;
        uint128 outputAmountMultiplier;
        bytes32 exclusiveRelayer;
        uint32 quoteTimestamp;
        uint32 fillDeadline;
        uint32 exclusivityParameter;
        bytes message;
    }

    address private constant FILLER = 0x0117B8414142cDa49ebBD30505c11772a2304a3a;

    error CumulativeSlippageTooHigh(uint256 minAmount, uint256 receivedAmount);
    error InformationMismatch();
    error InvalidAmount();
    error InvalidReceiver();
    error NativeAssetTransferFailed();
    error NoSwapDataProvided();
    error SwapFailed();

    event LiFiTransferStarted(BridgeData bridgeData);
    event LiFiGenericSwapCompleted(
        bytes32 indexed transactionId,
        string integrator,
        string referrer,
        address receiver,
        address fromAssetId,
        address toAssetId,
        uint256 fromAmount,
        uint256 toAmount
    );

    receive() external payable {}

    function swapTokensGeneric(
        bytes32 _transactionId,
        string calldata _integrator,
        string calldata _referrer,
        address payable _receiver,
        uint256 _minAmount,
        SwapData[] calldata _swapData
    ) external payable {
        _swapAll(_transactionId, _integrator, _referrer, _receiver, _minAmount, _swapData);
    }

    function swapTokensMultipleV3ERC20ToERC20(
        bytes32 _transactionId,
        string calldata _integrator,
        string calldata _referrer,
        address payable _receiver,
        uint256 _minAmount,
        SwapData[] calldata _swapData
    ) external {
        _swapAll(_transactionId, _integrator, _referrer, _receiver, _minAmount, _swapData);
    }

    function swapTokensMultipleV3ERC20ToNative(
        bytes32 _transactionId,
        string calldata _integrator,
        string calldata _referrer,
        address payable _receiver,
        uint256 _minAmount,
        SwapData[] calldata _swapData
    ) external {
        _swapAll(_transactionId, _integrator, _referrer, _receiver, _minAmount, _swapData);
    }

    function swapTokensMultipleV3NativeToERC20(
        bytes32 _transactionId,
        string calldata _integrator,
        string calldata _referrer,
        address payable _receiver,
        uint256 _minAmount,
        SwapData[] calldata _swapData
    ) external payable {
        _swapAll(_transactionId, _integrator, _referrer, _receiver, _minAmount, _swapData);
    }

    function startBridgeTokensViaAcrossV3(BridgeData calldata _bridgeData, AcrossV3Data calldata _acrossData)
        external
        payable
    {
        require(_bridgeData.minAmount > 0, InvalidAmount());
        require(_bridgeData.receiver == _acrossData.receiverAddress, InvalidReceiver());
        if (_bridgeData.sendingAssetId == address(0)) {
            require(msg.value == _bridgeData.minAmount, InvalidAmount());
            _send(address(0), payable(FILLER), msg.value);
        } else {
            IERC20(_bridgeData.sendingAssetId).safeTransferFrom(msg.sender, FILLER, _bridgeData.minAmount);
        }
        emit LiFiTransferStarted(_bridgeData);
    }

    function startBridgeTokensViaAcrossV4(BridgeData calldata _bridgeData, AcrossV4Data calldata _acrossData)
        external
        payable
    {
        require(!_bridgeData.hasSourceSwaps, InformationMismatch());
        if (_bridgeData.sendingAssetId == address(0)) {
            require(msg.value == _bridgeData.minAmount, InvalidAmount());
        } else {
            IERC20(_bridgeData.sendingAssetId).safeTransferFrom(msg.sender, address(this), _bridgeData.minAmount);
        }
        _bridge(_bridgeData, _acrossData);
    }

    function swapAndStartBridgeTokensViaAcrossV4(
        BridgeData memory _bridgeData,
        SwapData[] calldata _swapData,
        AcrossV4Data calldata _acrossData
    ) external payable {
        require(_bridgeData.hasSourceSwaps, InformationMismatch());
        uint256 received = _receive(_bridgeData.sendingAssetId, _bridgeData.minAmount, _swapData);
        _bridgeData.minAmount = received;
        _bridge(_bridgeData, _acrossData);
    }

    function _bridge(BridgeData memory _bridgeData, AcrossV4Data calldata _acrossData) private {
        require(_bridgeData.minAmount > 0, InvalidAmount());
        require(bytes32(uint256(uint160(_bridgeData.receiver))) == _acrossData.receiverAddress, InvalidReceiver());
        _send(_bridgeData.sendingAssetId, payable(FILLER), _bridgeData.minAmount);
        emit LiFiTransferStarted(_bridgeData);
    }

    function _swapAll(
        bytes32 _transactionId,
        string calldata _integrator,
        string calldata _referrer,
        address payable _receiver,
        uint256 _minAmount,
        SwapData[] calldata _swapData
    ) private {
        require(_receiver != address(0), InvalidReceiver());
        address toAsset = _swapData[_swapData.length - 1].receivingAssetId;
        uint256 received = _receive(toAsset, _minAmount, _swapData);
        _send(toAsset, _receiver, received);
        emit LiFiGenericSwapCompleted(
            _transactionId,
            _integrator,
            _referrer,
            _receiver,
            _swapData[0].sendingAssetId,
            toAsset,
            _swapData[0].fromAmount,
            received
        );
    }

    /// The tokens that the swaps bring, at least the minimum.
    function _receive(address asset, uint256 minAmount, SwapData[] calldata data) private returns (uint256 received) {
        require(data.length > 0, NoSwapDataProvided());
        uint256 before = _balance(asset) - (asset == address(0) ? msg.value : 0);
        for (uint256 i = 0; i < data.length; i++) _swap(data[i]);
        received = _balance(asset) - before;
        require(received >= minAmount, CumulativeSlippageTooHigh(minAmount, received));
    }

    function _swap(SwapData calldata data) private {
        bool isNative = data.sendingAssetId == address(0);
        if (!isNative) {
            IERC20 token = IERC20(data.sendingAssetId);
            if (data.requiresDeposit) token.safeTransferFrom(msg.sender, address(this), data.fromAmount);
            token.forceApprove(data.approveTo, data.fromAmount);
        }
        (bool ok,) = data.callTo.call{value: isNative ? data.fromAmount : 0}(data.callData);
        require(ok, SwapFailed());
    }

    function _balance(address token) private view returns (uint256) {
        return token == address(0) ? address(this).balance : IERC20(token).balanceOf(address(this));
    }

    function _send(address token, address payable to, uint256 amount) private {
        if (token != address(0)) return IERC20(token).safeTransfer(to, amount);
        (bool ok,) = to.call{value: amount}("");
        require(ok, NativeAssetTransferFailed());
    }
}
