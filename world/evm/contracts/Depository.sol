// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// Deposits for the world's solver, with the functions and events of Relay's depository. How deposits leave it is the
/// world's own: the solver's wallet releases refunds. The code is placed without its constructor and keeps no storage.
contract Depository {
    using SafeERC20 for IERC20;

    address private constant SOLVER = 0x647Ec5BC66514d9B3100c33bA2464be68972B410;

    error NotSolver(address caller);
    error NotAccepted(address to);

    event RelayNativeDeposit(address from, uint256 amount, bytes32 id);
    event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id);

    function depositNative(address depositor, bytes32 id) external payable {
        emit RelayNativeDeposit(_depositor(depositor), msg.value, id);
    }

    function depositErc20(address depositor, address token, uint256 amount, bytes32 id) public {
        IERC20(token).safeTransferFrom(msg.sender, address(this), amount);
        emit RelayErc20Deposit(_depositor(depositor), token, amount, id);
    }

    /// Deposits the whole allowance of the caller.
    function depositErc20(address depositor, address token, bytes32 id) external {
        depositErc20(depositor, token, IERC20(token).allowance(msg.sender, address(this)), id);
    }

    function release(address token, address to, uint256 amount) external {
        require(msg.sender == SOLVER, NotSolver(msg.sender));
        if (token != address(0)) return IERC20(token).safeTransfer(to, amount);
        (bool ok,) = to.call{value: amount}("");
        require(ok, NotAccepted(to));
    }

    function _depositor(address depositor) private view returns (address) {
        return depositor == address(0) ? msg.sender : depositor;
    }
}
