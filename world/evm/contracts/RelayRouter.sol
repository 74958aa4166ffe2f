// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {RelayCall, RelayResult} from "./RelayApprovalProxy.sol";

/// The functions of Relay's router that its service asks for, in the forms of 2.1 and 3, with their events: calls of the
/// router's own, and payouts of what it holds. Written from the published interface. The code is placed without its
/// constructor and keeps no storage.
contract RelayRouter {
    using SafeERC20 for IERC20;

    error ArrayLengthsMismatch();
    error CallFailed();

    event SolverNativeTransfer(address to, uint256 amount);
    event FundsMovement(address from, address to, address currency, uint256 amount, bytes metadata);

    receive() external payable {
        emit SolverNativeTransfer(address(this), msg.value);
    }

    function multicall(RelayCall[] calldata calls, address refundTo, address, bytes calldata metadata)
        external
        payable
        returns (RelayResult[] memory results)
    {
        if (msg.value > 0) emit FundsMovement(msg.sender, address(this), address(0), msg.value, metadata);
        results = _runAll(calls);
        _sendNative(0, refundTo, metadata);
    }

    function multicall(RelayCall[] calldata calls, address refundTo, address)
        external
        payable
        returns (RelayResult[] memory results)
    {
        results = _runAll(calls);
        _sendNative(0, refundTo, "");
    }

    function cleanupErc20s(
        address[] calldata tokens,
        address[] calldata recipients,
        uint256[] calldata amounts,
        bytes calldata metadata
    ) external {
        _sendTokens(tokens, recipients, amounts, metadata);
    }

    function cleanupErc20s(address[] calldata tokens, address[] calldata recipients, uint256[] calldata amounts)
        external
    {
        _sendTokens(tokens, recipients, amounts, "");
    }

    function cleanupNative(uint256 amount, address recipient, bytes calldata metadata) external {
        _sendNative(amount, recipient, metadata);
    }

    function cleanupNative(uint256 amount, address recipient) external {
        _sendNative(amount, recipient, "");
    }

    function cleanupNativeViaCall(uint256 amount, address to, bytes calldata data) external {
        uint256 units = amount == 0 ? address(this).balance : amount;
        if (units == 0) return;
        _call(to, units, data);
        emit FundsMovement(address(this), to, address(0), units, "");
    }

    function _runAll(RelayCall[] calldata calls) private returns (RelayResult[] memory results) {
        results = new RelayResult[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory output) = calls[i].target.call{value: calls[i].value}(calls[i].callData);
            if (!ok && !calls[i].allowFailure) {
                assembly ("memory-safe") {
                    revert(add(output, 32), mload(output))
                }
            }
            results[i] = RelayResult(ok, output);
        }
    }

    function _sendTokens(
        address[] calldata tokens,
        address[] calldata recipients,
        uint256[] calldata amounts,
        bytes memory metadata
    ) private {
        require(tokens.length == amounts.length && amounts.length == recipients.length, ArrayLengthsMismatch());
        for (uint256 i = 0; i < tokens.length; i++) {
            IERC20 token = IERC20(tokens[i]);
            uint256 units = amounts[i] == 0 ? token.balanceOf(address(this)) : amounts[i];
            if (units == 0) continue;
            token.safeTransfer(recipients[i], units);
            emit FundsMovement(address(this), recipients[i], address(token), units, metadata);
        }
    }

    function _sendNative(uint256 amount, address recipient, bytes memory metadata) private {
        address to = recipient == address(0) ? msg.sender : recipient;
        uint256 units = amount == 0 ? address(this).balance : amount;
        if (units == 0) return;
        _call(to, units, "");
        emit SolverNativeTransfer(to, units);
        emit FundsMovement(address(this), to, address(0), units, metadata);
    }

    function _call(address to, uint256 value, bytes memory data) private {
        (bool ok,) = to.call{value: value}(data);
        require(ok, CallFailed());
    }
}
